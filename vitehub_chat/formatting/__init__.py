"""Pure formatting: neutral messages become the request fields that one provider accepts."""
