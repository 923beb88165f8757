"""What is measured in calls, one measure per module."""
