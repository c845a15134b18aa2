import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/shown.ts';

/** An address, relative to the page. Throws UsageError for another value. */
export function addressOf(method: string, url: string | URL, advice: string): string {
  if (typeof url !== 'string' && !(url instanceof URL))
    throw new UsageError(`${method} takes the URL, got ${shown(url)}`, { advice });
  const base = (globalThis as { readonly location?: { readonly href: string } }).location?.href;
  return new URL(url, base).href;
}
