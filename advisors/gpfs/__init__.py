"""How files and folders lie in the blocks of a GPFS (Storage Scale)."""
