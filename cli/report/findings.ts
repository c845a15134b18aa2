import type { EventSink, ProgressEvent } from '../../index.ts';
import type { Options } from '../options/option.ts';
import { nameFlags } from './name-flags.ts';

/** A warning in a command's result; `code` is null if it has none. */
export type Finding = { readonly code: string | null; readonly text: string };

/** Collects the warnings and counts of a stream for a command's result, and passes all events on. */
export class Findings {
  readonly #onEvent: EventSink;
  readonly #options: Options;
  readonly #counts = new Map<string, number>();
  readonly warnings: Finding[] = [];

  constructor(onEvent: EventSink, options: Options) {
    this.#onEvent = onEvent;
    this.#options = options;
  }

  readonly onEvent = (event: ProgressEvent): void => {
    if (event.type === 'warning')
      this.warnings.push({ code: event.code ?? null, text: nameFlags(event.text, this.#options) });
    if ((event.type === 'warning' || event.type === 'note') && event.code !== undefined)
      this.#counts.set(event.code, event.count ?? 1);
    this.#onEvent(event);
  };

  /** The count in the last note or warning with that code; 0 if there is none. */
  count(code: string): number {
    return this.#counts.get(code) ?? 0;
  }
}
