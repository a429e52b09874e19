"""The digest: a mail with the numbers of the last week or day, for editors and for authors.

`periods` says which days a mail is about and when it is due, `readers` who gets one, `contents`
what it tells, `mail` how it is written, `sending` sends it once, and `links` has the address to
stop it.
"""
