/** A place where partitions lie and tasks run: 'cpu', 'gpu:0', 'gpu:1'. */
export type Place = string;

/** The memory of the process itself. Partitions lie there; no task runs there. */
export const HOST: Place = 'host';

/** The files of the run's spill folder. Partitions lie there; no task runs there. */
export const SPILL: Place = 'spill';
