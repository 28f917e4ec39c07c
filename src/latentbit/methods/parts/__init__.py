"""What methods are made of: the class that they extend, schedules that several share."""
