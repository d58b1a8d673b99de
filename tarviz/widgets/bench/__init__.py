"""The widget that measures a pipeline: controller, meter, verdict, chart."""
