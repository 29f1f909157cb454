// @ts-check
/** The topics as the server has them, fetched when first needed and kept in step. */

import { get, onAnnounced, onReconnect, stopAll } from "../../kit/api.js";
import { Resource } from "../../kit/core/resource.js";
import { toastError } from "../../kit/toast.js";
import { useEffect } from "../../vendor/preact.js";
import { chat, inChat } from "./chats.js";

/** @import { ApiError } from "../../kit/api.js" */
/** @import { TopicShown } from "../../api-types.d.ts" */

/** @type {Resource<TopicShown[], ApiError>} */
const topics = new Resource(
  () => get(inChat("/api/chat/topics")),
  (again) =>
    stopAll(
      onAnnounced("chat", (event) => (event.kind === "topics" || (event.kind === "changed" && event.wide)) && again()),
      onReconnect(again),
      chat.subscribe(() => {
        topics.value.value = null;
        again();
      }),
    ),
);
let isStarted = false;

/** Fetch them again; the promise is kept once they are here. */
export async function fetchTopics() {
  await topics.refresh();
  if (topics.trouble.value) toastError(topics.trouble.value);
}

/** The topics for a component, null until they are here; the first that needs them has them followed from then on. */
export function useTopics() {
  useEffect(() => {
    if (!isStarted) topics.start();
    isStarted = true;
    void fetchTopics();
  }, []);
  return topics.value.value;
}
