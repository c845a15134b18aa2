/** A place for partitions and tasks: 'cpu', 'gpu:0', 'gpu:1'. */
export type Place = string;

/** The memory of the process. It holds partitions; no task runs there. */
export const HOST: Place = 'host';

/**
 * Files of the spill folder. They hold partitions, which are copied to a device while its tasks need them; no
 * task runs there.
 */
export const SPILL: Place = 'spill';
