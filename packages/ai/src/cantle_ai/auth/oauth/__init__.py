"""The flows of OAuth 2 that logins are made of. Nothing here knows a vendor."""
