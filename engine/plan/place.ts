/** A place where partitions lie and tasks run: 'cpu', 'gpu:0', 'gpu:1'. */
export type Place = string;

/** The memory of the process itself. Partitions lie there; no task runs there. */
export const HOST: Place = 'host';

/**
 * Files of the spill folder. Partitions lie there and come to a device for as long as its tasks need them; no
 * task runs there.
 */
export const SPILL: Place = 'spill';
