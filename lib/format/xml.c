/* Texts in XML and HTML. */
#include "format/xml.h"

void
acc_xml(FILE *out, struct acc_str s)
{
	while (s.n > 0) {
		int32_t code;
		const uint32_t len = acc_char(s, &code);
		switch (code) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\n':
			fputs("&#10;", out);
			break;
		default:
			if (acc_char_plain(code) && (code & 0xFFFE) != 0xFFFE)
				fwrite(s.p, 1, len, out);
			else
				fputs("\xef\xbf\xbd", out);
		}
		s = (struct acc_str){s.p + len, s.n - len};
	}
}
