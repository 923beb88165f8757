"""The time of a write from models that are linear in its features (Xie et al., IPDPS 2019)."""
