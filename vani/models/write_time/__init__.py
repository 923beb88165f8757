"""The time of a write, by models that are linear in features of the write (Xie et al., IPDPS 2019)."""
