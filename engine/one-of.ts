import { UsageError } from './errors.ts';
import { shown } from './shown.ts';

/** The value, if it is allowed. Throws UsageError with the option's name and the allowed values otherwise. */
export function oneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new UsageError(`${name} must be one of ${allowed.join(', ')}, got ${shown(value)}`);
}
