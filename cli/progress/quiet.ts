import type { Progress } from './progress.ts';
import { warningText } from './phrases.ts';

/** Nothing but warnings. */
export function quietProgress(write: (line: string) => void): Progress {
  return {
    onEvent: (event) => {
      if (event.type === 'warning') write(warningText(event.text));
    },
    expect: () => {},
    note: () => {},
    close: () => {},
  };
}
