import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MakeAttack, Surroundings } from '../attack.ts';
import { type Ended, endOf, make, ratings, root, runCommand, wrongEnd } from '../commands.ts';
import {
  harmless,
  type Lies,
  lies as kinds,
  LyingServer,
} from '../../../test/support/faults/lying-server.ts';
import { digestOf } from '../replacements.ts';

const LIES = 3;
/** Most MiB of resident memory in addition to the same run with a good server. */
const MORE_MIB = 300;
/** A command waits this long for the next bytes if the server stops sending; the default is 30 s. */
const IDLE_MILLISECONDS = 500;
const forms = ['ratings.parquet', 'ratings.csv', 'ratings.ndjson', 'ratings.csv.gz', 'ratings.arrow'];
const watched = join(import.meta.dirname, '../programs/watched.mjs');
/** Not bundled, so that `watched` can shorten its waits. */
const separate = join(root, 'dist/cli/main.js');

/** Facts about a command that reads from the server, and its outputs from good servers of each version. */
export interface Learned {
  readonly url: string;
  digests: readonly string[];
  /** Its peak of resident memory. */
  mib: number;
}

interface Reading extends Learned {
  readonly name: string;
  readonly line: readonly string[];
  readonly output: string;
  requests: number;
}

/** A run's end, peak of memory, and digest of the output; '' if there is no output. */
export interface ReadOutcome {
  readonly ended: Ended;
  readonly mib: number;
  readonly digest: string;
}

/**
 * The fault of a run; undefined if there is none. `lie`: undefined if the run ended before a false answer.
 */
export function wrongReading(
  { url, digests, mib: usual }: Learned,
  lie: Lies | undefined,
  { ended, mib, digest }: ReadOutcome,
): string | undefined {
  const isHarmless =
    lie === undefined || (harmless.includes(lie.lie) && (lie.times > 0 || lie.lie === 'half, and a wait'));
  const wrong = wrongEnd(ended, { codes: [3], names: [url], mustSucceed: isHarmless });
  if (wrong !== undefined) return wrong;
  if (ended.code === 0 && !digests.includes(digest)) return 'gives other bits';
  if (ended.code !== 0 && digest !== '') return 'leaves an output';
  return mib > usual + MORE_MIB ? `takes ${mib.toFixed(0)} MiB, and ${usual.toFixed(0)} usually` : undefined;
}

/**
 * Reads ratings from a web server that gives some false answers. Passes if the output equals the output from
 * a good server, or if the command ends with exit code 3 and names the address. Memory must stay bounded.
 */
export const lies: MakeAttack = (around) => {
  const { folder, random, count, find } = around;
  let server: LyingServer;
  let readings: readonly Reading[] = [];

  async function run({ line, output }: Reading, lie: Lies): Promise<ReadOutcome> {
    const peak = join(folder, 'peak');
    for (const path of [output, peak]) rmSync(path, { recursive: true, force: true });
    server.begin(lie);
    const isSilent = lie.lie === 'half, and nothing more';
    const ended = await runCommand(line, {
      nodeArgs: ['--import', watched],
      env: { FACTORFLOW_PEAK_FILE: peak, ...(isSilent && { FACTORFLOW_IDLE: `${IDLE_MILLISECONDS}` }) },
      main: isSilent ? separate : undefined,
    });
    const mib = existsSync(peak) ? Number(readFileSync(peak, 'utf8')) / 1024 : 0;
    return { ended, mib, digest: existsSync(output) ? digestOf(output) : '' };
  }

  /** Learns the outputs of both versions, once. False if the command fails with a good server. */
  async function learn(reading: Reading): Promise<boolean> {
    if (reading.digests.length > 0) return true;
    const found: string[] = [];
    for (const lie of ['another file', 'none']) {
      const { ended, mib, digest } = await run(reading, { ...good, lie, first: 1, times: 0 });
      if (ended.code !== 0) {
        find(`${reading.name} from a good server: ${endOf(ended)}`);
        return false;
      }
      found.push(digest);
      reading.mib = mib;
    }
    [reading.digests, reading.requests] = [found, server.requests];
    return true;
  }

  return {
    prepare: async () => {
      server = new LyingServer(await filesOf(folder));
      readings = readingsOf(await server.open(), folder);
      return undefined;
    },
    round: async () => {
      const reading = readings[random(readings.length)];
      if (!(await learn(reading))) return;
      for (let left = LIES; left > 0; left--) {
        const lie = anyLie(around, reading.requests);
        const outcome = await run(reading, lie);
        const isReached = server.requests >= lie.first;
        count(!isReached ? 'not reached' : outcome.ended.code === 0 ? 'passed' : 'refused');
        const wrong = wrongReading(reading, isReached ? lie : undefined, outcome);
        if (wrong !== undefined) find(`${reading.name}, ${JSON.stringify(lie)}: ${wrong}`);
      }
    },
    close: async () => server.close(),
  };
};

const good: Omit<Lies, 'lie' | 'first' | 'times'> = { size: 0, versioned: ['ETag'] };

function anyLie({ random }: Surroundings, requests: number): Lies {
  const names = Object.keys(kinds);
  const times = [1, 1, 2, 0][random(4)];
  const versioned = ([['ETag'], ['Last-Modified'], ['ETag', 'Last-Modified'], []] as const)[random(4)];
  const size = random(2) === 0 ? random(200) : random(1 << 20);
  return { lie: names[random(names.length)], first: 1 + random(requests), times, size, versioned };
}

/** Both versions of the ratings in each form: the second has the rows in another order, and other ratings. */
async function filesOf(folder: string): Promise<ReadonlyMap<string, readonly [Buffer, Buffer]>> {
  const plain = join(folder, 'plain.csv');
  await make(['convert', ratings, plain]);
  const [head, ...rows] = readFileSync(plain, 'utf8').trimEnd().split('\n');
  const texts = [rows, rows.toReversed().map((row) => row.replace(',8,', ',9,'))];
  for (const [version, lines] of texts.entries()) {
    const own = join(folder, `${version}`);
    mkdirSync(own);
    const first = join(own, 'ratings.csv');
    writeFileSync(first, `${head}\n${lines.join('\n')}\n`);
    for (const form of forms.filter((name) => name !== 'ratings.csv')) {
      const codec = form.endsWith('.parquet') ? ['--codec', 'uncompressed'] : [];
      await make(['convert', first, join(own, form), ...codec]);
    }
  }
  const read = (version: number, form: string) => readFileSync(join(folder, `${version}`, form));
  return new Map(forms.map((form) => [form, [read(0, form), read(1, form)]]));
}

function readingsOf(address: string, folder: string): readonly Reading[] {
  const small = ['--rank', '4', '--max-iter', '1', '--device', 'cpu', '--workers', '2'];
  return forms.flatMap((form) => {
    const url = `${address}/${form}`;
    const [rows, model] = [join(folder, 'rows.csv'), join(folder, 'model')];
    const learned = { url, digests: [], requests: 0, mib: 0 };
    const convert = ['convert', url, rows, '--quiet'];
    const train = ['train', url, ...small, '--quiet', '--model-dir', model];
    return [
      { ...learned, name: `convert ${form}`, output: rows, line: convert },
      { ...learned, name: `train ${form}`, output: model, line: train },
    ];
  });
}
