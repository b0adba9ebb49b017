"""What makes two resources the same: rules of measures and transformations, blocking that loses nothing, matching."""
