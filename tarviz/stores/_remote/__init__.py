"""What the stores behind HTTP share: requests, credentials, reads that resume, listings and uploads.

`reader.RemoteStore` is what such a store derives from; `access.Access` is where it says how it is asked.
"""
