/* python.h - what a script in Python is, by its text alone */
#ifndef DUMP_CONFIG_PYTHON_H
#define DUMP_CONFIG_PYTHON_H

#include "acc/base.h"

/* Blanks at p. */
uint32_t acc_python_indent(const char *p, const char *end);
/* "dict(" and "HParams(lr=0.1" at p: how long it is up to what it holds; 0: no such call. */
uint32_t acc_python_call(const char *p, const char *end);
/* Is it nothing but assignments? Of each line that begins one. */
bool acc_python_only_assigns(struct acc_str s);
/* Does the name of a file say that it configures? Then what it calls and defines does not hinder. */
bool acc_python_configures(struct acc_str base);
/* Lines that give a name a value, at the beginning or behind a class; those that begin a class into *classes. */
unsigned acc_python_assigns(struct acc_str s, unsigned *classes);

/* Lines "name = value", "[section]" and comments, three of the first at least, and nothing else? */
bool acc_text_is_ini(struct acc_str s);

#endif
