import { waitForOther } from '../../engine/waits.ts';
import {
  ask,
  bodyOf,
  chunksOf,
  close,
  contentRange,
  get,
  isOfEmptyFile,
  lengthOf,
  TransientFailure,
  problemOf,
  refuse,
  withAttempts,
  isUnversioned,
  type UrlVersions,
} from './request.ts';

/**
 * All bytes of a file on a web server, as they arrive; this needs no support for ranges. Retries twice before
 * the first bytes. Throws DataError that names the URL, also if fewer bytes arrive than announced; UsageError
 * for an invalid URL.
 */
export async function* streamUrl(url: string, versions?: UrlVersions): AsyncGenerator<Uint8Array> {
  const problem = problemOf(url, 'the whole file');
  const answer = await withAttempts(async () => {
    const found = await get(url, {});
    if (found.response.status === 200) return found;
    await close(found);
    return refuse(found.response, problem);
  }, problem);
  const { headers } = answer.response;
  const version = { etag: headers.get('etag'), modified: headers.get('last-modified') };
  try {
    versions?.require(url, { ...version, size: lengthOf(answer.response) }, problem);
  } catch (error) {
    await close(answer);
    throw error;
  }
  const received = chunksOf(answer);
  const chunks =
    versions !== undefined && isUnversioned(version) ? versions.compared(url, received, problem) : received;
  let length = 0;
  try {
    for (;;) {
      const chunk = await waitForOther(chunks.next());
      if (chunk.done) break;
      length += chunk.value.length;
      yield chunk.value;
    }
  } catch (error) {
    if (!(error instanceof TransientFailure)) throw error;
    throw problem(`${error.message}, after ${length} bytes`, 'Check the connection and try again', error);
  } finally {
    await chunks.return(undefined);
  }
}

/** Facts about a file on a web server. */
export interface UrlHead {
  /** First bytes; fewer if the file is shorter. */
  readonly bytes: Uint8Array;
  /** Bytes of the whole file, if the server reports them. */
  readonly size: number | undefined;
  /** The content type that the server sends, in lower case and without parameters: "text/csv". */
  readonly type: string;
}

/** First bytes of a file on a web server, with its size and type. Throws as streamUrl does. */
export function headOfUrl(url: string, length: number): Promise<UrlHead> {
  const problem = problemOf(url, `the first ${length} bytes`);
  return ask(url, { Range: `bytes=0-${length - 1}` }, problem, async (answer) => {
    const { response } = answer;
    const type = typeOf(response);
    if (isOfEmptyFile(response)) return { bytes: new Uint8Array(0), size: 0, type };
    if (response.status !== 206 && response.status !== 200) return refuse(response, problem);
    const announced = response.headers.get('content-range') ?? 'bytes from an unknown place';
    if (response.status === 206 && !/^bytes 0-\d+\//.test(announced))
      throw problem(`the server sends ${announced} instead`, 'Download the file first');
    const bytes = await bodyOf(answer, { enough: length });
    const size = response.status === 200 ? lengthOf(response) : contentRange(response)?.size;
    return { bytes: bytes.subarray(0, length), size, type };
  });
}

function typeOf({ headers }: Response): string {
  return (headers.get('content-type') ?? '').split(';')[0].trim().toLowerCase();
}
