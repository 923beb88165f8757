"""Rules about composite (progressive) Lustre layouts."""
