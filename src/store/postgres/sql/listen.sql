-- listen: on the connection of the listener, and nowhere else.
LISTEN @channel
