"""The plan is a Handlebars template: a planner for Portico."""
