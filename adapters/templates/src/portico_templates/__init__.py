"""Prompts in Handlebars and Jinja2, and the planner whose plan is a Handlebars template."""
