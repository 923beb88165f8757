"""Archives of OTF2, the format of Score-P: calls on files among the events of a run."""
