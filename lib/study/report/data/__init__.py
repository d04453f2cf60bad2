"""Pictures of data: scenes and their patches, homography sequences, and how hard they are."""
