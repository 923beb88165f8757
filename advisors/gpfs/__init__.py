"""Files and folders in the blocks of a GPFS (Storage Scale)."""
