"""Rules about files and folders on GPFS (Storage Scale)."""
