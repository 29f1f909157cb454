// @ts-check
/** The topics as the server has them, fetched when first wanted and kept in step. */

import { get, onAnnounced, onReconnect } from "../../kit/api.js";
import { toastError } from "../../kit/toast.js";
import { signal, useEffect } from "../../vendor/preact.js";

/** @import { Topic } from "./core/topics.js" */

/** Null until they have come. @type {import("../../vendor/preact.js").Signal<Topic[] | null>} */
export const topics = signal(null);

let isFollowed = false;
let asked = 0;

/** Ask anew; an answer that a later one has overtaken is dropped. */
export async function fetchTopics() {
  const own = (asked += 1);
  try {
    const response = await get("/api/chat/topics");
    if (own === asked) topics.value = response;
  } catch (error) {
    if (own === asked) toastError(error);
  }
}

/** The topics for a component; the first that wants them makes them followed from then on. */
export function useTopics() {
  useEffect(() => {
    if (!isFollowed) {
      isFollowed = true;
      onAnnounced(
        "chat",
        (value) =>
          ["topics", "changed"].includes(value.kind) && (value.kind === "topics" || value.wide) && void fetchTopics(),
      );
      onReconnect(() => void fetchTopics());
    }
    void fetchTopics();
  }, []);
  return topics.value;
}
