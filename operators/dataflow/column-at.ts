import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/shown.ts';
import { nearest, spelled } from '../../engine/nearest.ts';

/** The position of a column among the names; `purpose` completes the error "there is no column ...". */
export function columnAt(name: string, names: readonly string[], purpose: string): number {
  if (typeof name !== 'string')
    throw new UsageError(`the name of a column is a text, got ${shown(name)} ${purpose}`);
  const position = names.indexOf(name);
  if (position >= 0) return position;
  throw new UsageError(`there is no column "${name}" ${purpose}`, {
    advice: spelled(nearest(name, names), `The columns are: ${names.join(', ') || 'none'}`),
  });
}
