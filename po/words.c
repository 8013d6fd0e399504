/* Messages that xgettext finds nowhere else: words that are arguments of others by themselves, and
 * what the system says. Not compiled. */
const char *words[] = {
	/* sides and places */
	ACC_MSG("device"), ACC_MSG("bench"), ACC_MSG("output"), ACC_MSG("input"),
	ACC_MSG("standard input"),
	ACC_MSG("communicates"), ACC_MSG("overflows"), ACC_MSG("unreduced"), ACC_MSG("same"),
	ACC_MSG("different"), ACC_MSG("doubtful"), ACC_MSG("trouble"), ACC_MSG("unjudged"),
	ACC_MSG("noise"), ACC_MSG("incomplete"), ACC_MSG("tensor"),
	ACC_MSG("weight"),
	ACC_MSG("large"), ACC_MSG("small"),
	/* of accdiff */
	ACC_MSG("configuration"), ACC_MSG("log"), ACC_MSG("weights"), ACC_MSG("dump"),
	ACC_MSG("second bench"), ACC_MSG("dumps"), ACC_MSG("logs"), ACC_MSG("configurations"),
	/* acc_nomem */
	ACC_MSG("out of memory"),
	/* of the reports */
	ACC_MSG("what"), ACC_MSG("text"), ACC_MSG("value"), ACC_MSG("limit"),
	/* of brief */
	ACC_MSG("finding: "), ACC_MSG("name: "), ACC_MSG("source: "), ACC_MSG("rule: "),
	ACC_MSG(", from "), ACC_MSG("evidence: "), ACC_MSG("also: "), ACC_MSG("looked at: "),
	ACC_MSG("not looked at: "), ACC_MSG("next: "),
	/* strerror */
	ACC_MSG("No such file or directory"), ACC_MSG("Permission denied"),
	ACC_MSG("Is a directory"), ACC_MSG("Not a directory"), ACC_MSG("No space left on device"),
	ACC_MSG("Broken pipe"), ACC_MSG("Input/output error"), ACC_MSG("Cannot allocate memory"),
	ACC_MSG("Too many open files"), ACC_MSG("File exists"), ACC_MSG("Read-only file system"),
	ACC_MSG("Too many levels of symbolic links"), ACC_MSG("File name too long"),
	ACC_MSG("Operation not permitted"), ACC_MSG("Bad file descriptor"),
	ACC_MSG("Invalid argument"), ACC_MSG("Disk quota exceeded"),
};
