"""What servers of earlier formats wrote, and how it is made: `python -m tests.stored FOLDER`."""
