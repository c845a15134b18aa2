import { UsageError } from './errors.ts';
import { shown } from './format.ts';
/**
 * The candidate most similar to a word, ignoring case: by letters to insert, delete or replace, else the one
 * with which a longer word ends. Undefined if none is similar.
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const scored = candidates.map((candidate) => ({
    candidate,
    distance: editDistance(word.toLowerCase(), candidate.toLowerCase()),
  }));
  const best = scored.reduce((left, right) => (right.distance < left.distance ? right : left), {
    candidate: '',
    distance: Number.POSITIVE_INFINITY,
  });
  const most = word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3));
  if (best.distance <= most && best.distance < word.length) return best.candidate;
  return candidates.find((name) => name.length > 3 && word.toLowerCase().endsWith(name.toLowerCase()));
}

/** "Did you mean userId? The columns are: ...", or the second sentence alone. */
export function spelled(guess: string | undefined, others: string): string {
  return guess === undefined ? others : `Did you mean ${guess}? ${others}`;
}

/** Levenshtein's distance: insertions, deletions and replacements of one letter. */
function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, i) => i);
  for (let i = 1; i <= left.length; i++) {
    const row = [i];
    for (let j = 1; j <= right.length; j++) {
      row.push(
        Math.min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (left[i - 1] === right[j - 1] ? 0 : 1)),
      );
    }
    previous = row;
  }
  return previous[right.length];
}

/** The value, if it is allowed. Throws UsageError with the option's name and the allowed values otherwise. */
export function oneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new UsageError(`${name} must be one of ${allowed.join(', ')}, got ${shown(value)}`);
}
