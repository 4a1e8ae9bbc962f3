DO RELEASE_LOCK({digest})
