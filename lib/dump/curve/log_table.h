/* One row per grammar of log lines; the first that knows a line has it. Included more than
 * once, so without a guard. */
ROW(megatron)
ROW(validation)
ROW(timers)
ROW(memory)
ROW(mindformers)
ROW(norm)
ROW(deepspeed)
ROW(arguments)
ROW(dict)
