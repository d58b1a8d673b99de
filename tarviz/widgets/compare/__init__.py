"""The widget that shows op chains side by side: controller, preview, differences."""
