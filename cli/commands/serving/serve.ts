import { UsageError } from '../../../engine/errors.ts';
import { counted } from '../../../engine/format.ts';
import { parseSize } from '../../../api/sizes.ts';
import { columnOptions, indexOption, readOptions } from '../../options/data/data-options.ts';
import { checkNameFlags, nameOptions, readNames } from '../../options/data/name-options.ts';
import { decimal, listOf, text, textOf, wholeNumber } from '../../options/kinds.ts';
import { machineOptions, parquetBackendOption } from '../../options/machine-options.ts';
import type { Option } from '../../options/option.ts';
import { commonOptions } from '../../options/output-options.ts';
import { openSession, readNamed } from '../../sessions/open-session.ts';
import { defineCommand } from '../command.ts';

const MIB = 2 ** 20;

/** In bytes. */
const maxBody: Option<number> = {
  describe: 'largest body of a request, such as 1MiB',
  group: 'Server:',
  defaultText: '1MiB',
  fallback: MIB,
  read: (given, flag) => parseSize(typeof given === 'number' ? given : textOf(given, flag), flag),
};

const seconds = (describe: string, fallback: number, least: number) =>
  decimal({ describe, group: 'Server:', least, most: 3600, fallback });

const serverOptions = {
  port: wholeNumber({
    describe: 'TCP port; 0 for any free one',
    group: 'Server:',
    least: 0,
    most: 65_535,
    fallback: 8080,
  }),
  host: text({
    describe: 'address to listen at; 0.0.0.0 for all addresses of the machine',
    group: 'Server:',
    fallback: '127.0.0.1',
  }),
  tokenFile: text({
    describe: 'file with a token that requests must send: "authorization: Bearer TOKEN"',
    group: 'Server:',
    defaultText: 'the variable FACTORFLOW_TOKEN; without it no token is needed',
  }),
  allowHost: listOf({
    describe:
      'names that the header "host" of requests may have, separated by commas, besides localhost, 127.x.x.x and ::1',
    group: 'Server:',
    defaultText: 'any name, but none on a loopback address without a token',
  }),
  poll: seconds('seconds between checks for a new model in the folder; 0: no checks', 5, 0),
  maxRequests: wholeNumber({
    describe: 'requests at a time; further ones are refused with 503 and Retry-After',
    group: 'Server:',
    least: 1,
    most: 10_000,
    fallback: 256,
  }),
  maxBody,
  requestTimeout: seconds('seconds for an answer', 5, 0.001),
  receiveTimeout: seconds('seconds in which a client must send its whole request', 10, 0.1),
  grace: seconds('seconds that running requests get when the server ends', 10, 0),
};

const { workers } = machineOptions;

export const serve = defineCommand({
  summary: 'Answer requests for recommendations over HTTP',
  positionals: [{ name: 'model', describe: 'folder of a model', required: true }],
  options: {
    ...serverOptions,
    exclude: text({
      describe:
        'ratings whose pairs are not recommended, such as those trained on; a file, a folder or a quoted glob',
      group: 'Data:',
    }),
    items: text({
      describe:
        'file with attributes of items, such as genres and prices, for the field filter of requests: ' +
        'CSV, TSV, NDJSON, Parquet or Arrow',
      group: 'Data:',
    }),
    itemsIdCol: text({
      describe: 'its column of ids',
      group: 'Data:',
      defaultText: "the model's item column, or item, movieId, id and the like",
    }),
    index: indexOption,
    ...nameOptions,
    ...columnOptions,
    ...readOptions,
    workers,
    parquetBackend: parquetBackendOption,
    ...commonOptions,
  },
  examples: [
    [
      'serve model --exclude ratings/ --item-names movies.csv',
      'new items with titles, for this machine alone',
    ],
    ['serve model --items movies.parquet', "for requests with a filter such as genre = 'Drama'"],
    ['serve model --host 0.0.0.0 --port 80 --token-file token.txt', 'for other machines, with a token'],
  ],
  epilog:
    'Needs the package fastify; without it the command prints how to install it. /docs has the routes. ' +
    'SIGTERM and Ctrl-C let running requests end; SIGHUP loads the model again. npx does not pass signals on.',
  run: async ({ values, positionals }, { signal, onEvent, onHangup }) => {
    checkNameFlags(values);
    const { items, itemsIdCol } = values;
    if (items === undefined && itemsIdCol !== undefined)
      throw new UsageError('--items-id-col acts only with --items', {
        advice: 'Leave it out, or name the file',
      });
    const [folder] = positionals.model;
    const { readToken } = await import('../../server/check-head.ts');
    const token = readToken(values.tokenFile, process.env);
    const { loadFastify } = await import('../../server/load-fastify.ts');
    await loadFastify();
    await using session = await openSession({ ...values, device: 'cpu' }, { signal }, { oneVersion: false });
    const { serveModel } = await import('../../server/serve-model.ts');
    const { allowHost = [], exclude, host, port } = values;
    const served = await serveModel({
      host,
      allowHosts: allowHost,
      port,
      token,
      mostRequests: values.maxRequests,
      bodyBytes: values.maxBody,
      answerMilliseconds: 1000 * values.requestTimeout,
      receiveMilliseconds: 1000 * values.receiveTimeout,
      graceSeconds: values.grace,
      pollMilliseconds: 1000 * values.poll,
      data: {
        folder,
        session,
        index: values.index,
        readExclude: exclude === undefined ? undefined : () => readNamed(session, exclude, values),
        readFilters:
          items === undefined
            ? undefined
            : (model) =>
                model.readItemFilters(items, {
                  ...(itemsIdCol === undefined ? {} : { idCol: itemsIdCol }),
                  signal,
                  onEvent,
                }),
        readNames: (model) => readNames(session, values, { signal, onEvent }, { model }),
        onEvent,
      },
      signal,
      onEvent,
      onHangup,
    });
    return {
      json: { command: 'serve', model: folder, ...served },
      text: `Answered ${counted(served.requests, 'request')} in ${served.seconds.toFixed(1)} s`,
    };
  },
});
