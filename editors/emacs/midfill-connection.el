;;; midfill-connection.el --- How a server is asked and told things -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The same for midfill's own connection, eglot's and lsp-mode's.  Must not
;; know which of them there are, nor what is on the screen.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'midfill-sync)

(defvar midfill-connection-other-functions nil
  "Each gives another connection that offers suggestions in the current buffer.
Or t if one is to come, or nil.")

(cl-defgeneric midfill-connection-request (connection method params success &optional failure)
  "Ask CONNECTION for METHOD with PARAMS; then call SUCCESS or FAILURE.
Return a function that cancels it.")

(cl-defgeneric midfill-connection-notify (connection method params)
  "Tell CONNECTION METHOD with PARAMS.")

(cl-defgeneric midfill-connection-sync (connection)
  "Have CONNECTION know the current text of the current buffer.
Return the buffer's URI and the unit of its columns.")

(defun midfill-connection--later (function)
  "FUNCTION, called outside of the process filter.
There another message may arrive in the middle."
  (lambda (argument)
    (run-at-time 0 nil function argument)))

(cl-defmethod midfill-connection-request ((connection jsonrpc-connection) method params success &optional failure)
  "Ask CONNECTION for METHOD with PARAMS; then call SUCCESS or FAILURE."
  (let (answer)
    (midfill-sync-if-running
     connection
     (lambda ()
       (setq answer (jsonrpc-async-request connection method params :timeout nil
                                           :success-fn (midfill-connection--later success)
                                           :error-fn (midfill-connection--later (or failure #'ignore))))))
    ;; The number of the request is returned by jsonrpc of Emacs 31; before, it is the last one that was given.
    (let ((id (if (consp answer) (car answer) (jsonrpc--next-request-id connection))))
      (lambda ()
        (midfill-connection-notify connection :$/cancelRequest `(:id ,id))))))

(cl-defmethod midfill-connection-notify ((connection jsonrpc-connection) method params)
  "Tell CONNECTION METHOD with PARAMS."
  (midfill-sync-tell connection method params))

(defun midfill-connection-offers-p (capabilities)
  "Whether CAPABILITIES, a plist, are those of midfill."
  ;; Some other server may offer suggestions, which is not to be asked as if it were midfill.
  (and (plist-member capabilities :inlineCompletionProvider)
       (seq-contains-p (plist-get (plist-get capabilities :executeCommandProvider) :commands) "midfill.accept")))

(defun midfill-connection-other ()
  "Another connection for the current buffer, t if one is to come, or nil."
  (run-hook-with-args-until-success 'midfill-connection-other-functions))

(defun midfill-connection-join ()
  "Load what is for eglot or lsp-mode where these are loaded."
  (pcase-dolist (`(,theirs . ,ours) '((eglot . midfill-eglot) (lsp-mode . midfill-lsp)))
    (when (featurep theirs)
      (require ours))))

;;; What it is told about suggestions

(defun midfill-connection-execute (connection command arguments &optional success failure)
  "Have CONNECTION execute COMMAND with the list ARGUMENTS.
Then SUCCESS or FAILURE is called."
  (when connection
    (midfill-connection-request connection :workspace/executeCommand
                                `(:command ,command :arguments ,(vconcat arguments))
                                (or success #'ignore) failure)))

(defun midfill-connection-accepted (connection item)
  "Tell CONNECTION that ITEM is accepted."
  (when-let* ((command (plist-get item :command)))
    (midfill-connection-execute connection (plist-get command :command) (plist-get command :arguments))))

(defun midfill-connection-accepted-part (connection item length)
  "Tell CONNECTION that LENGTH units of UTF-16 of ITEM are accepted."
  (midfill-connection-notify connection :textDocument/didPartiallyAcceptCompletion
                             `(:item ,item :acceptedLength ,length)))

(defun midfill-connection-rejected (connection item)
  "Tell CONNECTION that ITEM is not what the user wants."
  (when-let* ((arguments (plist-get (plist-get item :command) :arguments)))
    (midfill-connection-execute connection "midfill.reject" (list (elt arguments 0)))))

(provide 'midfill-connection)
;;; midfill-connection.el ends here
