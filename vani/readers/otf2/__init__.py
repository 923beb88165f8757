"""OTF2 archives, the format of Score-P: file calls among a run's events."""
