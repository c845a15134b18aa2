import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Settings of a set, as scripts/reproduce/settings/NAME.json keeps them. */
export interface Settings {
  /** Flags of `train`. */
  readonly flags: Readonly<Record<string, string | number>>;
  /** Left out where the settings were not found by this command's search. */
  readonly chosen?: {
    /** Day of the search, UTC. */
    readonly date: string;
    /** Command and flags that hold the validation part out of the training part. */
    readonly validation: string;
    readonly metric: string;
    /** The metric's value on the validation part. */
    readonly value: number;
    /** Number of settings that were tried, and seconds of the search. */
    readonly trials: number;
    readonly seconds: number;
  };
}

/** The file of the settings that the repository keeps. */
export function settingsFile(set: string): string {
  return join(import.meta.dirname, 'settings', `${set}.json`);
}

export function readSettings(file: string): Settings | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Settings) : undefined;
}

export function writeSettings(file: string, settings: Settings): void {
  writeFileSync(file, `${JSON.stringify(settings, null, 2)}\n`);
}
