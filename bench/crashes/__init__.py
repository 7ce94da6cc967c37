"""A benchmark that kills workers and servers of several libraries, and counts the accepted jobs that are lost."""
