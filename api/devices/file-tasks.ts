/** The tasks of a CPU device that read or write files: its threads import this module at the first of them. */
import type { GivenHandlers } from '../../cpu/handler.ts';

export const handlers: GivenHandlers = {};
