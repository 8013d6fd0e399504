/* xml.h - texts of unknown origin in XML and HTML */
#ifndef ACC_FORMAT_XML_H
#define ACC_FORMAT_XML_H

#include "acc/base.h"

/* Of a text or an attribute in double quotes; what is not plain (acc_char_plain) but a line's end is U+FFFD. */
void acc_xml(FILE *out, struct acc_str s);

#endif
