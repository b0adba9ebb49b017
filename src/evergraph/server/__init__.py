"""The broker: SPARQL over HTTP, standing queries over WebSocket and Server-Sent Events, and a feed of all changes."""
