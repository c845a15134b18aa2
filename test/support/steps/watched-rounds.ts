import type { Task } from '../../../engine/task.ts';
import type { Recording } from './recorded-runs.ts';

/** The version that a task reads or writes of a side. */
export function versionOf(refs: Task['inputs'], side: string): number {
  return Object.values(refs).find(({ name }) => name.endsWith(`/${side}`))?.version ?? 0;
}

export interface Watched {
  /** The number of tasks of that text that had been sent when each round was reported. */
  readonly sent: number[];
  readonly warnings: string[];
  /** Notes of rounds that found no room. */
  readonly notes: string[];
  /** At each warning, the partitions with that name that were on the device. */
  readonly held: string[][];
}

/**
 * Records at each event the tasks sent to a device that match `sent`, and the partitions there that match
 * `held`.
 */
export function watched(
  { events, log, devices }: Recording,
  place: string,
  texts: { readonly sent: RegExp; readonly held: RegExp },
): Watched {
  const seen: Watched = { sent: [], warnings: [], notes: [], held: [] };
  const device = devices.find(({ info }) => info.place === place);
  const push = events.push.bind(events);
  events.push = (...more) => {
    for (const event of more) {
      if (event.type === 'iteration')
        seen.sent.push(
          log.filter((one) => one.at === place && one.verb === 'run' && texts.sent.test(one.text)).length,
        );
      if (event.type === 'warning') {
        seen.warnings.push(event.text);
        seen.held.push((device?.held ?? []).filter((key) => texts.held.test(key)));
      }
      if (event.type === 'note' && /did not fit on the device/.test(event.text)) seen.notes.push(event.text);
    }
    return push(...more);
  };
  return seen;
}
