"""What portico-handlebars registers."""
