"""Prediction of an application's next behaviour, from numbered behaviours and their order (AIOT, Lei et al.)."""
