"""Many runs of a centre: what of them is kept, what they cost, and which setting would win it back."""
