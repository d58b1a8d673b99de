"""Values that ops work on: from payloads to arrays and pictures, and PIL on arrays of any dtype and channel count."""
