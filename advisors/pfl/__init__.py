"""Rules on composite (progressive) Lustre layouts."""
