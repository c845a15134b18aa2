import { arch, cpus, release, totalmem, type } from 'node:os';

/**
 * One line that describes the machine, printed above the numbers of a bench: CPU model and cores, memory,
 * Node, operating system and the day (UTC). Only compare figures whose lines are similar.
 */
export function describeMachine(): string {
  const processors = cpus();
  const model = processors[0]?.model.replace(/\s+/g, ' ').trim() || 'unknown CPU';
  const cores = `${processors.length} ${processors.length === 1 ? 'core' : 'cores'}`;
  const memory = `${(totalmem() / 2 ** 30).toFixed(1)} GiB`;
  const day = new Date().toISOString().slice(0, 10);
  return `${model}, ${cores}, ${memory}, Node ${process.versions.node}, ${type()} ${release()} ${arch()}, ${day}`;
}
