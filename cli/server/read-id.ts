import { UsageError } from '../../engine/errors.ts';
import type { Id } from '../../index.ts';
import { shown } from '../options/kinds.ts';

/** Throws UsageError unless it is an id that JSON holds exactly. */
export function readId(given: unknown, name: string): Id {
  if (typeof given === 'string') return given;
  if (typeof given === 'number' && Number.isSafeInteger(given)) return given;
  const advice =
    typeof given === 'number' && Number.isInteger(given)
      ? { advice: 'Give whole numbers beyond 2^53 as text' }
      : {};
  throw new UsageError(`${name} must be an id, a whole number or a text, got ${short(given)}`, advice);
}

/** A value for a message, cut after a hundred characters. */
export function short(given: unknown): string {
  if (Array.isArray(given)) return `a list of ${given.length}`;
  if (typeof given === 'object' && given !== null) return 'an object';
  const text = shown(given) ?? String(given);
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}
